"""How the policy is trained: records become rows, rows answer as an evaluator, three stages of TRL's trainers, and the comparison on tasks held out.

    rows, random_tasks  ->  collect        recorded  ->  rewards, stages  ->  compare  ->  train
"""
