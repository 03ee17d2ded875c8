"""What is made of a program by its text: its part that an entry point reaches, and its mutants. Nothing here runs."""
