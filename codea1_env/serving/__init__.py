"""The judge over HTTP: scores for whatever trains elsewhere. `codea1 serve`, extra `serve`.

`requests.py` reads what clients send; `service.py` judges it, within limits; `app.py` speaks HTTP; `supervisor.py`
keeps it up.
"""
