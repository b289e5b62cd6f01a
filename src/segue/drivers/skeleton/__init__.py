"""Parts that our own agent programs share: each is a process that speaks the Agent Client Protocol on its pipes."""
