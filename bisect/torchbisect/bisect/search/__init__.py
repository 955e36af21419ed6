"""The search for the builds where a mismatch came and went: pure functions of the builds' answers."""
