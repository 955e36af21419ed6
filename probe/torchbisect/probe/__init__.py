"""Answer the one question: does this script, on this torch, with these settings, still show this mismatch?"""
