"""Testing without a real agent: for driver authors, users and the demo.

The rehearsal agent is a real process that speaks the Agent Client Protocol, performs a script, and keeps a diary of its
own, so that losses can be counted from outside. A `stage` provides a repository and a real server; `work` is a user
with a diary, and `reckoning` compares the diaries with the journal. `model` is a scripted language model, and
`conformance` the suite that every driver passes.
"""
