"""The suites that translators are judged on: each file reads one of them into items."""
