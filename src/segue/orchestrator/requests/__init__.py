"""Requests of people and of scheduled retries: run, resume, pause, prompt, answer, fork, import, rewind."""
