"""Whether a grader can be fooled: wrong programs that try to be counted as right, played on anybody's grader.

`corpus` reads the programs, `cell` keeps a grader away from the machine, `grader` talks to it, `run` plays the corpus,
`result` is what came of it, `page` shows that. The command is `codea1 audit`; in tests, `codea1_env.testing.audit`.
"""
