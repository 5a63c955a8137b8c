"""Interpretations of verdicts that are not "confirmed", or that differ between the sizes."""

REASONS = {
    "beam-width": """Outputs become more probable and better with every seed; the share of the gain that beam 2
brings varies between seeds. Beam 2 raises BLEU by one or two points here, about as much as seeds differ from each
other.""",
    "heads": """The two sizes test different things. If every target word consists of letters from three
positions (small), one head is not enough. Sentences of Tatoeba have about six words, and three layers with one head each
attend to three positions anyway. At width 256 more heads are narrower, and 32 heads of width 8 have few dimensions to
compare. The published gain, with longer sentences and twice the width, is below one BLEU point.""",
    "related-languages": """Related data help in both sizes. The larger model translates the held-out direction
with every seed. The small one has learned too little to choose the target language reliably, and its seeds differ
widely.""",
    "reversed-source": """Copying letters through one vector (small) gains from reading in reverse, because the first
letters of source and target are then close to each other. Sentences of Tatoeba have about six words, so the distances are
short, and an encoder of width 512 with enough training remembers the words in both directions. The published gain is
from English to French, with much longer sentences.""",
    "score-functions": """Attention works with every score function, which is the larger part of the claim. But the
dot product of states depends on learned parameters as well: encoder and decoder learn states that fit it. The parameters
of a score function have to be learned in addition, in the same number of steps. Luong et al. found the same order
of dot and multiplicative.""",
    "short-beam": """Sums make outputs shorter and dividing by the length corrects it, with every seed. In the full
size a wide beam loses no measurable BLEU: a model with enough training gives short outputs so little probability that a
beam of 20 does not find worse ones.""",
    "teacher-forcing": """Scheduled sampling is more robust with every seed. Teacher forcing is clearly faster in the
small size. In the full size all three soon copy nearly everything, and their means over the training hardly
differ.""",
}
