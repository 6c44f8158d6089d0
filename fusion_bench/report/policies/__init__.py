"""The record and the page of a policy study."""
