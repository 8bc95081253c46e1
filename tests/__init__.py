"""The tests, and what all of them share."""

# How long a process that a test starts may take, in seconds: more than ten times the slowest on two idle cores, so that
# no limit ends a test that would have passed on a busy machine.
LONGEST = 600
# The same for a whole session of pytest, a program under a sanitizer and all commands of a page.
LONGEST_SESSION = 1800
