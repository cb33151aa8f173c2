"""Agents that play the game of schedules: `game.py` is the game (Gymnasium), `network.py` a policy of any kernel's size, `ppo.py` the agent that
learns it. The agents that learn nothing are the searches of `warpwright/search`; all of them are asked through one interface, `Search`.
"""
