"""The viewer: duels on one self-contained HTML page (`codea1 view`).

`sources.py` reads files and the Mistake Book. `games.py` converts matches for the page. `accounts.py` explains each
reward. `page.py` builds the page from the plain scripts and style sheets beside it, without a build step, and shows it
in a notebook.
"""

from codea1_env.viewer.page import Page, make_page, view
from codea1_env.viewer.sources import Found, read_games

__all__ = ["Found", "Page", "make_page", "read_games", "view"]
