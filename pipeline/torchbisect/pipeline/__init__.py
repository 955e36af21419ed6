"""One run over one script: options, session, stages and the report they build."""
