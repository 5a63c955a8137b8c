"""Interpretations of results, above all of verdicts that are not "confirmed"."""

REASONS = {
    "cost": """The number of operations grows as claimed in both sizes. On the CPU the measured time follows it. On the H200 the
time of attention grows with the power of 1.3 over the measured lengths: short sequences do not fill the GPU, so they
take nearly as long as longer ones.""",
    "parallel": """The number of sequential operations grows as claimed, and so does the ratio of the times. On the CPU the
recurrent network is slower from 128 tokens on. On the H200 it is still faster at 512 tokens: the batches have the same
number of tokens at every length and fill the GPU, cuDNN runs all steps of the recurrence in one operation, and the
Transformer of the same size has four layers with attention in place of two.""",
    "beam-width": """Outputs become more probable and better with every seed; the share of the gain that beam 2
brings varies between seeds. Beam 2 raises BLEU by one or two points here, about as much as seeds differ from each
other.""",
    "early-mistake": """The first words of complete outputs are nearly always valid here, so the gain of the beam comes
from mistakes later in the sentence. After a first word that is forced to be wrong, a beam has about as many wrong words as
greedy search: a beam avoids a mistake by keeping alternatives, and does not repair a mistake that has been made. In the full
size the best of five samples has more valid outputs than greedy search as well; with two of fifteen seeds it has
more than the beam, so the last statement is not clear.""",
    "positions": """"Better" does not mean that sines generalise well to longer strings. At positions beyond training they
copy more letters correctly than one-hot and learned encodings, which are hardly better than guessing one of ten letters,
but still most letters are wrong. The Transformer has learned how to use the positions of training, and sines of
later positions only resemble them.""",
    "related-languages": """In the small size, related data help more than the same amount of unrelated data, so what helps is
what the pairs have in common and not only the larger amount. In the full size the small pair has five hundred sentences
and is nearly learned without help, and seeds differ more than the arms. With two pivots, a source language occurs with
several target languages, so the model has to read the tag that names the target; in the full size most words are right. With one pivot,
German occurs only with English as its target, and nothing in training distinguishes a model that reads the tag from
one that answers every German sentence in English.""",
    "reversed-source": """Copying letters through one vector (small) gains from reading in reverse, because the first
letters of source and target are then close to each other. Sentences of Tatoeba have about six words, so the distances are
short, and an encoder of width 512 with enough training remembers the words in both directions. The published gain is
from English to French, with much longer sentences.""",
    "score-functions": """The documents call these scores good choices and one layer "often enough"; they do not rank them, and
neither does this experiment. In the small size the training is short: scores that are small at first, because of the
division by √d or the sigmoid, need more steps until the softmax concentrates on one letter. Published comparisons of score
functions measure BLEU of translations (Luong et al. 2015, table 4; Britz et al. 2017, table 5), which the accuracy of
copied letters cannot be compared with.""",
    "short-beam": """Sums make outputs shorter and dividing by the length corrects it, with every seed. In the full
size a wide beam loses no measurable BLEU: a model with enough training gives short outputs so little probability that a
beam of 20 does not find worse ones.""",
    "teacher-forcing": """Teacher forcing and free running are the two ends, scheduled sampling is between them. Free running is
the slowest, as the lecture says: until its predictions are right, the decoder reads wrong letters. But it is also the
condition in which a wrong letter is the usual input, and a decoder without attention that learns to copy in this way
may rely on the state of the encoder more than on the previous letter. The lecture claims no more than that the
mixture is more robust than teacher forcing.""",
}
