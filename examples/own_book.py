"""A Mistake Book of your own: the tests that failed most recently come back first, whatever passed since.

book = MistakeBook(BookConfig(policy="own_book:Recent", capacity=32))
"""

from codea1_env import BookPolicy, Shelf, TestCase, Visit


class Recent(BookPolicy):
    """`frequencies` holds the number of the visit at which a test failed last; `capacity` bounds it, the oldest go."""

    def replayed(self, shelf: Shelf, limit: int, problem_id: str) -> tuple[TestCase, ...]:
        return tuple(sorted(shelf.frequencies, key=shelf.frequencies.__getitem__, reverse=True)[:limit])

    def visited(self, shelf: Shelf, visit: Visit) -> None:
        shelf.visits += 1
        for case in (*visit.failed_replays, *visit.failures):
            shelf.frequencies[case] = shelf.visits
        while self.config.capacity and len(shelf.frequencies) > self.config.capacity:
            del shelf.frequencies[min(shelf.frequencies, key=shelf.frequencies.__getitem__)]
