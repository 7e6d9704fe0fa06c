"""Questions with pools of graded documents: collected, grouped, made harder, mined by a committee, graded."""
