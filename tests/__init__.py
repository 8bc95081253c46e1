"""The tests, and what all of them share."""

# How long a process that a test starts may take, in seconds: more than ten times the slowest on two idle cores. A
# machine that is busy with other work ends nothing that would have passed.
LONGEST = 1800
