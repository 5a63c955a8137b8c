"""What we make of verdicts that are not "confirmed", or not the same in both sizes."""

REASONS = {
    "beam-width": """Likelier outputs and better ones hold with every seed; how much of the gain the second
hypothesis brings does not. A beam of 2 lifts BLEU by one or two points here, about as much as one seed differs from
another.""",
    "heads": """The two sizes ask different things. Where every word to be written is made of three places
at once (small), one head is not enough. Sentences of Tatoeba have about six words, and three layers with a head each
look at three places anyway; at width 256 more heads are narrower ones, and 32 heads of 8 numbers have little left to compare
by. The published gain, with longer sentences and twice the width, is below one BLEU point.""",
    "related-languages": """Related data help in both sizes. The direction that was never shown is
translated by the larger model with every seed; the small one has learned too little to be sure of the language it
should write, and its seeds differ widely.""",
    "reversed-source": """Copying letters through one vector (small) gains from it, because the first
letters are then near each other. Sentences of Tatoeba have about six words: there is little distance to
win, and an encoder of 512 numbers that has learned enough remembers them either way. The published gain is from English to
French, with much longer sentences.""",
    "score-functions": """Every score function learns to look, which is the larger part of the claim. But a
dot product of states has learned parts as well: encoder and decoder arrange their states for it. What a score function learns
of its own then only has to be learned in addition, in the same number of steps. Luong et al. found the same order
of dot and multiplicative.""",
    "short-beam": """Sums make outputs shorter and dividing by the length makes up for it, with every seed.
What a wide beam costs in BLEU is not to be seen in the full size: a translator that has learned enough gives short outputs
so little probability that a beam of 20 does not find worse ones.""",
    "teacher-forcing": """The mixture is more robust with every seed. That the truth teaches faster is clear
in the small size; in the full one all three ways soon copy nearly everything, and the mean over the training
hardly tells them apart.""",
}
