"""Step Functions rules that ministack lacks: evaluated and scaled time-outs, task tokens, execution ends, typed SDK calls."""
