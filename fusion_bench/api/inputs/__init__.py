"""What is given to the public functions, in any form: records, datasets, systems, reports."""
