"""Which language a text is in: by its script, else by the commonest words of some languages.

Small on purpose: it tells apart the languages listed here, says nothing of others, and says nothing (None) where a
text gives too little evidence, such as a number, a name or two words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from seatrial.errors import did_you_mean

__all__ = ["LANGUAGES", "language_of", "problem_with_language"]

_COMMON_WORDS = {
    "en": "the of and to in is that it was for on are with as his they at be this have from or had by not but "
    "what all were we when your can said there an which their if will has would been you could please "
    "our does did should",
    "de": "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden "
    "aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur "
    "oder aber vor zur bis ich ihre ihr wir kann wurde bitte",
    "fr": "de la le et les des en un une du que dans est pour qui au par sur il pas plus ne se ce sont avec "
    "vous nous été mais ou leur son sa être cette elle je votre aux deux ont comme peut était même d l "
    "c n s",
    "es": "de la que el en y a los se del las un por con no una su para es al lo como más pero sus le ya o "
    "este sí porque esta entre cuando muy sin sobre también me hasta hay donde ha sido usted fue está",
    "it": "di che è e la il un a per in una non sono mi ho si lo ma ha le i con del da al come più se della "
    "nel gli dei alla ci questo anche stato dal delle suo sua questa",
    "pt": "de a o que e do da em um para com não uma os no se na por mais as dos como mas ao ele das à seu "
    "sua ou quando muito nos já está eu também só pelo pela até isso foi você são tem",
    "nl": "de het een en van ik te dat die in je is niet op aan met als voor zijn er maar om hem dan zou of "
    "wat mijn men dit zo door over ze bij ook tot uw naar heeft kan wordt werd hebben",
    "sv": "och i att det som en på är av för med till den har de inte om ett han men var jag sig från vi så "
    "kan när år under också efter eller nu sin där mot ska du",
    "da": "og i at det er en til af på den der for med som ikke de et har jeg fra vi du kan om men han var "
    "sig så eller skal vil blev efter havde også nu da",
    "nb": "og i det er på en som for av til med at de har ikke den et om jeg fra vi du kan men han var seg så "
    "eller skal vil ble etter hadde også nå da bare hva",
    "fi": "ja on ei se että hän oli en ole mutta kun niin minä mitä tämä olen sen voi ovat myös jos kuin tai "
    "siitä vain sitä joka mukaan nyt olla",
    "pl": "w i na z się do nie że jest to o jak za od po przez dla przy co ale czy tak był jego oraz tym są "
    "tego może która które który ma być już",
    "cs": "a se v na je že s z do to o i jako za by si ale po pro jsou není od být při které který byl jak "
    "také nebo ve",
    "tr": "ve bir bu da de için ile çok ne olarak daha gibi en kadar sonra var ama ben olan mi değil o her "
    "şey siz oldu",
}
"""ISO 639-1 code to frequent words. Languages close to each other need a longer text."""
_SCRIPTS = {
    "GREEK": "el",
    "HEBREW": "he",
    "HANGUL": "ko",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "CJK": "zh",
    "THAI": "th",
    "DEVANAGARI": "hi",
    "ARABIC": "ar",
}
_CYRILLIC_ONLY = {"uk": "іїєґ", "ru": "ыэё"}
LANGUAGES = tuple(sorted({*_COMMON_WORDS, *_SCRIPTS.values(), *_CYRILLIC_ONLY}))
"""Codes that can be told apart."""

_PROFILES = {code: frozenset(words.split()) for code, words in _COMMON_WORDS.items()}
_WORD = re.compile(r"[^\W\d_]+")
_READ = 20_000


def problem_with_language(code: str) -> str | None:
    """Why a case cannot ask for this language, or None."""
    if code in LANGUAGES:
        return None
    hint = did_you_mean(code, LANGUAGES)
    return f"language {code!r} cannot be recognised" + (f"; {hint}" if hint else "")


def language_of(text: str) -> str | None:
    """ISO 639-1 code of the language that `text` (its first 20,000 characters) is in; None where that is not clear."""
    sample = unicodedata.normalize("NFC", text[:_READ]).casefold()
    script = _main_script(sample)
    if script == "LATIN":
        return _by_common_words(sample)
    if script == "CYRILLIC":
        return _by_letters(sample)
    return _SCRIPTS.get(script or "")


def _main_script(text: str) -> str | None:
    """The script of most letters; Japanese writes Chinese characters too, so its own letters decide."""
    names = Counter(unicodedata.name(letter, "?").split()[0] for letter in text if letter.isalpha())
    if not names:
        return None
    kana = names["HIRAGANA"] + names["KATAKANA"]
    if kana and names["CJK"]:
        names["HIRAGANA"] += names.pop("CJK")
    return names.most_common(1)[0][0]


def _by_letters(text: str) -> str | None:
    counts = {code: sum(map(text.count, letters)) for code, letters in _CYRILLIC_ONLY.items()}
    best = max(counts, key=lambda code: counts[code])
    return best if counts[best] > 0 and list(counts.values()).count(counts[best]) == 1 else None


def _by_common_words(text: str) -> str | None:
    words = _WORD.findall(text)
    scores = {code: sum(word in profile for word in words) for code, profile in _PROFILES.items()}
    (first, most), (_, second) = Counter(scores).most_common(2)
    clear = most >= 2 and most > second and most >= 0.1 * len(words)
    return first if clear else None
