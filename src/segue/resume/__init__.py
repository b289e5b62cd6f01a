"""How work goes on: the way back into a conversation, and what the agent is told first.

The planner chooses the way and says why; the prompts name the task, what was interrupted, and the effects whose outcome
nobody knows. Pure: the same state gives the same plan and the same words.
"""
