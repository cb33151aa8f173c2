"""One chat client for any OpenAI-compatible endpoint, and its stand-ins, which record and play answers.

chat = OpenAI("https://host/v1", "model-name")           # endpoint.py; key from WARPWRIGHT_API_KEY, else OPENAI_API_KEY; never logged
text = chat.ask([{"role": "user", "content": "..."}])
chat = Local("models/small")                             # local.py: a model of transformers' in a folder, without an endpoint
chat = Metered(chat, Limits(tokens=200_000))             # metered.py: stops before a limit is passed, logs every question
"""
