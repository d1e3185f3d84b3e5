"""The episode loop, and the engines that evaluate populations with it."""
