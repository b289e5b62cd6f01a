"""What a driver's author, a test or the demo needs to play with Segue without a real agent.

Everything here is shipped. The centre of the room is the rehearsal agent: a real process that speaks the Agent Client
Protocol, does what its script says, and keeps a diary of its own, so that what was lost can be counted from outside. A
`stage` gives it a repository and a real server; `armed` pulls the plug on that server at any durable step; `work` is a
user with a diary, and `reckoning` compares the diaries with the journal.
"""
