"""The Mistake Book: the tests that solutions failed, which of them come back, and how a book is kept on disk."""

from codea1_env.mistake_book.book import MistakeBook, SavedBook, read_book

__all__ = ["MistakeBook", "SavedBook", "read_book"]
