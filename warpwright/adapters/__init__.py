"""Everybody's evaluator: other systems' ways of asking, each in one file over the server's client (docs/adapters.md).

    agents         mcp_server (Model Context Protocol), harbor (task folders), autoresearch (an editable file and a fixed bench)
    evolution      openevolve, shinka, gepa
    learning       trl, openenv, verifiers

`judge.Judge` stands between them and the server: one text in, one score out. `export.py` writes the folders that other systems load.
"""
