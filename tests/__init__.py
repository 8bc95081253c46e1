"""The tests, and constants that all of them share."""

# Timeout in seconds for a process that a test starts: more than ten times the slowest on two idle cores, so that it
# does not end a correct test on a busy machine.
LONGEST = 600
# The same for a whole session of pytest, a program under a sanitizer, and all commands of a page.
LONGEST_SESSION = 1800
# Variables for the pytest that was called, which has read them: the processes that tests start must not, other pytests
# among them.
OF_THE_CALLER = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTHONWARNINGS", "FORCE_COLOR", "PY_COLORS", "COLUMNS")
OF_THE_CALLER += ("CI", "BUILD_NUMBER")  # pytest writes longer summaries there
