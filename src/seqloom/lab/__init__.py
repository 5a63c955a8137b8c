"""The lab: what the lectures claim, as experiments that anyone can run again."""
