"""What kind of question a query is: by rules, or by a language model."""
