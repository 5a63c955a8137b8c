"""Language pairs that a run translates, from its recipe or from --languages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from seqloom.config.schema.corpora import (
    BundledConfig,
    CorpusOrHoldOutConfig,
    FileNames,
    ImportedConfig,
    ParallelConfig,
    RecordsConfig,
    TaggedCorpusConfig,
    TmxConfig,
    list_file_names,
)
from seqloom.config.schema.recipe import RunConfig
from seqloom.config.schema.tags import expand_corpora, tag_display_name
from seqloom.config.schema.task import TranslationConfig
from seqloom.core.errors import ConfigError

_NAMES = """
aa Afar; ab Abkhazian; af Afrikaans; ak Akan; am Amharic; an Aragonese; ar Arabic;
as Assamese; av Avaric; ay Aymara; az Azerbaijani; ba Bashkir; be Belarusian;
bg Bulgarian; bi Bislama; bm Bambara; bn Bengali; bo Tibetan; br Breton; bs Bosnian;
ca Catalan; ce Chechen; ch Chamorro; co Corsican; cr Cree; cs Czech; cu Church Slavonic;
cv Chuvash; cy Welsh; da Danish; de German; dv Divehi; dz Dzongkha; ee Ewe; el Greek;
en English; eo Esperanto; es Spanish; et Estonian; eu Basque; fa Persian; ff Fulah;
fi Finnish; fj Fijian; fo Faroese; fr French; fy Western Frisian; ga Irish;
gd Scottish Gaelic; gl Galician; gn Guarani; gu Gujarati; gv Manx; ha Hausa; he Hebrew;
hi Hindi; ho Hiri Motu; hr Croatian; ht Haitian; hu Hungarian; hy Armenian; hz Herero;
ia Interlingua; id Indonesian; ie Interlingue; ig Igbo; ii Sichuan Yi; ik Inupiaq;
io Ido; is Icelandic; it Italian; iu Inuktitut; ja Japanese; jv Javanese; ka Georgian;
kg Kongo; ki Kikuyu; kj Kuanyama; kk Kazakh; kl Kalaallisut; km Khmer; kn Kannada;
ko Korean; kr Kanuri; ks Kashmiri; ku Kurdish; kv Komi; kw Cornish; ky Kyrgyz; la Latin;
lb Luxembourgish; lg Ganda; li Limburgish; ln Lingala; lo Lao; lt Lithuanian;
lu Luba-Katanga; lv Latvian; mg Malagasy; mh Marshallese; mi Maori; mk Macedonian;
ml Malayalam; mn Mongolian; mr Marathi; ms Malay; mt Maltese; my Burmese; na Nauru;
nb Norwegian Bokmål; nd North Ndebele; ne Nepali; ng Ndonga; nl Dutch;
nn Norwegian Nynorsk; no Norwegian; nr South Ndebele; nv Navajo; ny Chichewa; oc Occitan;
oj Ojibwa; om Oromo; or Oriya; os Ossetian; pa Punjabi; pi Pali; pl Polish; ps Pashto;
pt Portuguese; qu Quechua; rm Romansh; rn Rundi; ro Romanian; ru Russian; rw Kinyarwanda;
sa Sanskrit; sc Sardinian; sd Sindhi; se Northern Sami; sg Sango; si Sinhala; sk Slovak;
sl Slovenian; sm Samoan; sn Shona; so Somali; sq Albanian; sr Serbian; ss Swati;
st Southern Sotho; su Sundanese; sv Swedish; sw Swahili; ta Tamil; te Telugu; tg Tajik;
th Thai; ti Tigrinya; tk Turkmen; tl Tagalog; tn Tswana; to Tonga; tr Turkish; ts Tsonga;
tt Tatar; tw Twi; ty Tahitian; ug Uyghur; uk Ukrainian; ur Urdu; uz Uzbek; ve Venda;
vi Vietnamese; vo Volapük; wa Walloon; wo Wolof; xh Xhosa; yi Yiddish; yo Yoruba;
za Zhuang; zh Chinese; zu Zulu
"""

LANGUAGE_NAMES: dict[str, str] = dict(entry.strip().split(" ", 1) for entry in _NAMES.split(";"))


def language_name(code: str) -> str:
    """Return the English name of a language, or its code if the name is unknown."""
    return LANGUAGE_NAMES.get(code, code)


_CODE = r"[A-Za-z][A-Za-z0-9_-]*"


@dataclass(frozen=True, order=True)
class LanguagePair:
    """Source and target language, by their codes."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"{self.source}-{self.target}"

    def matches(self, source: str | None, target: str | None) -> bool:
        """True if the pair has the given source and target language. None matches any language."""
        return source in (None, self.source) and target in (None, self.target)


def recipe_language_pairs(config: RunConfig) -> tuple[LanguagePair, ...]:
    """Return the language pairs of a recipe's training corpora.

    Returns an empty tuple if the pair of one of the corpora is unknown. The pair is known in each
    of these cases:
    - The corpus is bundled.
    - The corpus has a target language tag such as '<2de>', and a name such as 'en-de'.
    - The suffixes of its files are language codes (train.de, train.en).
    - The names of its fields (JSONL, Parquet, Arrow) are language codes.
    - Its name consists of two language codes ('en-de').
    - The corpus is a translation memory.
    """
    if not isinstance(config.task, TranslationConfig):
        return ()
    pairs = [_corpus_pair(corpus) for corpus in expand_corpora(config.data.train)]
    if None in pairs:  # without the pair of this corpus, the list would be incomplete
        return ()
    return tuple(dict.fromkeys(pair for pair in pairs if pair is not None))


def _corpus_pair(corpus: CorpusOrHoldOutConfig) -> LanguagePair | None:
    tagged_pair = _tagged_pair(corpus)
    if tagged_pair is not None:
        return tagged_pair
    if isinstance(corpus, TaggedCorpusConfig) and corpus.tag is None and corpus.name is not None:
        source_code, _, target_code = corpus.name.partition("-")
        if named_pair := _pair_of_codes(source_code, target_code):
            return named_pair
    match corpus:
        case BundledConfig(source=source, target=target):
            return LanguagePair(source, target)
        case ParallelConfig(source=source, target=target):
            return _pair_of_codes(_common_suffix(source), _common_suffix(target))
        case RecordsConfig(source=source, target=target):
            prefix = "translation."
            return _pair_of_codes(source.removeprefix(prefix), target.removeprefix(prefix))
        case TmxConfig(source=source, target=target):
            return _pair_of_codes(_primary_subtag(source), _primary_subtag(target))
        case ImportedConfig(source=str(source), target=str(target)):
            return LanguagePair(source, target)
        case _:
            return None


def _tagged_pair(corpus: CorpusOrHoldOutConfig) -> LanguagePair | None:
    """Return the pair of a corpus with a tag: (en, de) for the name 'en-de' and the tag '<2de>'.

    Returns None if the corpus has no tag, or if the name does not end in the language of the tag.
    """
    if not isinstance(corpus, TaggedCorpusConfig) or corpus.tag is None or corpus.name is None:
        return None
    source, _, target = corpus.name.partition("-")
    return (
        LanguagePair(source, target) if source and target == tag_display_name(corpus.tag) else None
    )


def _primary_subtag(language: str) -> str:
    """de-AT -> de"""
    return re.split("[-_]", language)[0].lower()


def _common_suffix(names: FileNames) -> str:
    """Return the suffix of the files, without compression; "" if they have different suffixes."""
    suffixes = {_file_suffix(name) for name in list_file_names(names)}
    return suffixes.pop() if len(suffixes) == 1 else ""


def _file_suffix(path: str) -> str:
    """data/train.de.gz -> de"""
    name = PurePath(path).name
    suffixes = [suffix for suffix in name.split(".")[1:] if suffix not in ("gz", "zst", "txt")]
    return suffixes[-1] if suffixes else ""


def _pair_of_codes(source: str, target: str) -> LanguagePair | None:
    """Return the pair if both strings are language codes, else None."""
    if source in LANGUAGE_NAMES and target in LANGUAGE_NAMES:
        return LanguagePair(source, target)
    return None


def parse_language_options(settings: Sequence[str], runs: Sequence[str]) -> dict[str, LanguagePair]:
    """Parse the values of --languages. Returns a dictionary from run names to language pairs.

    settings: values such as "NAME=de:en". If there is only one run, "NAME=" can be left out.
    runs:     names of all runs
    """
    pairs: dict[str, LanguagePair] = {}
    for setting in settings:
        match = re.fullmatch(
            rf"(?:(?P<run>[^=]+)=)?(?P<source>{_CODE}):(?P<target>{_CODE})", setting
        )
        if match is None:
            raise ConfigError(
                f"--languages {setting}: must have the form de:en, or NAME=de:en for several runs"
            )
        if match["run"] is None and len(runs) > 1:
            raise ConfigError(
                f"--languages {setting}: there are several runs; name one of them, for example "
                f"--languages {runs[0]}={setting}"
            )
        run = match["run"] or runs[0]
        if run not in runs:
            raise ConfigError(
                f"--languages {setting}: there is no run '{run}'; the runs are {', '.join(runs)}"
            )
        pairs[run] = LanguagePair(match["source"], match["target"])
    return pairs
