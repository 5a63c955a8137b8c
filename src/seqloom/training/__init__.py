"""The loop, and what keeps it honest: one division, exact resumption, a journal."""
