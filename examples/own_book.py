"""A Mistake Book of your own: the tests that failed most recently come back first, whatever passed since.

book = MistakeBook(BookConfig(policy="own_book:Recent", policy_args={"visits": 50}, capacity=32))
"""

from codea1_env import BookConfig, BookPolicy, Shelf, TestCase, Visit


class Recent(BookPolicy):
    """`frequencies` holds the number of the visit at which a test failed last; `capacity` bounds it, the oldest go.

    A test that nobody failed for more than so many `visits` goes, too; 0: none does.
    """

    def __init__(self, config: BookConfig, visits: int = 0) -> None:
        super().__init__(config)
        self.visits = visits

    def replayed(self, shelf: Shelf, limit: int, problem_id: str) -> tuple[TestCase, ...]:
        return tuple(sorted(shelf.frequencies, key=shelf.frequencies.__getitem__, reverse=True)[:limit])

    def visited(self, shelf: Shelf, visit: Visit) -> None:
        shelf.visits += 1
        for case in (*visit.failed_replays, *visit.failures):
            shelf.frequencies[case] = shelf.visits
        for case, last in list(shelf.frequencies.items()):
            if self.visits and shelf.visits - last > self.visits:
                del shelf.frequencies[case]
        while self.config.capacity and len(shelf.frequencies) > self.config.capacity:
            del shelf.frequencies[min(shelf.frequencies, key=shelf.frequencies.__getitem__)]
