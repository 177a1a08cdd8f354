"""Step Functions rules that ministack lacks: evaluated, scaled time-outs, task tokens, ends, typed SDK calls."""
