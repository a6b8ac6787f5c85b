"""What GitHub gives a job and takes from it: environment, log, summary, pull-request comment, cache service.

Nothing in here decides about numbers, and nothing in here can change the exit code.
"""
