"""Three-way merges of versions: branches merged, one change picked, one change reverted.

All three are one question: what turned ``base`` into ``source``, and how does ``target`` look with
the same changes? A merge takes the fork (or the last merge) as base and the branch's newest version
as source; picking a change takes the version before it and the version it made; reverting takes the
same two in the other order.
"""
