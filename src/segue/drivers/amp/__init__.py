"""Amp, which keeps its threads on its vendor's server: the program `python -m segue.drivers.amp`.

Amp has no protocol that stays open between two prompts. It is started for each of them, resumes a thread by
`amp threads continue`, and ends with the turn. This program keeps the thread between turns and speaks the Agent Client
Protocol, as all other agents do. `agent` opens threads, `command` starts Amp and classifies its errors, `turns` plays
one prompt, `reporter` turns Amp's output into updates, `settings` holds the rules that make Amp ask for permission,
and `permission_socket` receives these requests (`delegate` sends them).
"""
