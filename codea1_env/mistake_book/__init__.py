"""The Mistake Book: the tests that solutions failed, which of them come back, and how a book is kept on disk."""
