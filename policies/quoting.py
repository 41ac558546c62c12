"""Whether a call was asked for in so many words: the quote that a write needs in `safeWrite` mode."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import pairwise

from policies.spellings import composed

FEWEST_WORDS = 3
"""Words in a row of a quote that is not a whole message: fewer are found in anything."""
FEWEST_OF_A_MESSAGE = 2
"""Words of a whole message that asks for something: “delete XYZ” may, “yes” and “hello” do not."""

MOST_SENTENCES = 4
"""Sentences that one quote may go over and still be shown with all of them."""
MOST_PLACES = 200
"""Places in a text where the same words are looked for in fewer sentences."""
_BETWEEN_SENTENCES = "\ue000"
"""Stands between two sentences while they are folded: a character of no script (private use)."""
LEFT_OUT = "\ufffc"
"""Stands for a file in a message, and in `typed_words` for all that is left out: U+FFFC, which stands for an object."""
_NOTE = re.compile(r"^\[(?:attached: .*\]|and [0-9]+ more files\])$|\[picture: (?:.*\]|[^\n”]*)", re.MULTILINE)
"""What a platform adds to a message for a file or a picture, whose names others choose."""

_UNSEEN = r"\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
"""Characters that cannot be seen, such as marks of the direction of writing, which stand at the ends of lines."""
_ITEM = r"(?:[-*•◦▪+]|[0-9]{1,9}[.)])\s"
_QUOTED_LINE = re.compile(
    rf"(?:[\s{_UNSEEN}*_~]|{_ITEM})*+"
    r"(?:>|&gt;|[＞﹥˃ᐳ≫≻⟩❭❯❱➤▶►▸|｜￨¦❘❙❚ǀ∣⏐‖⎪\u2500-\u259f])"
)
"""Also in a list, and in bold, italic or struck-out letters; with any drawn line or block (U+2500 to U+259F)."""
_QUOTED_TO_THE_END = re.compile(r"\s*(?:>|&gt;|＞){3}")
"""Slack's mark of a quote that goes on to the end of the message."""
FEWEST_TICKS = 3
"""Backticks of a fence around code."""
_TILDE = "~~~"
_TICKS = re.compile(r"`{3,}")
_TILDES = re.compile(rf"(?:[\s{_UNSEEN}]|{_ITEM})*+~{{3,}}")
_INDENTED = re.compile(r"(?: {4}|\t)")
_CUT = "\0"
"""Stands for what is left out of a message."""
_APOSTROPHES = "['‘’‚‛′´❛❜״ʼʻʹ׳]"
_QUOTATION = re.compile(
    '["“”„‟«»‹›「」『』《》〈〉〝〞〟〃″‴‶‷⁗＂❝❞｢｣`＇｀﹁﹂﹃﹄⟨⟩⟪⟫❬❭❮❯❰❱⸂⸃⸌⸍⸜⸝⸠⸡⹂🙶🙷🙸ʺˮ˝]'
    rf"|(?<![^\W_]){_APOSTROPHES}(?=\S)|(?<=\S){_APOSTROPHES}(?![^\W_])|(?<!\S){_APOSTROPHES}(?!\S)"
    r"|</?(?:a|blockquote|q|pre|code|cite)(?![\w-])[^<>]*+>|<!--|-->"
    r"|\[/?(?:quote|code)(?![\w-])[^\[\]]*+\]|\{quote(?::[^{}]*+)?\}|&(?:quot|apos|[lr][sda]quo|#3[49]);",
    re.IGNORECASE,
)
"""Quotation marks of any script, inline code, and tags that quote; single marks only where they are no apostrophes."""
_OPENS = re.compile(r"(?<![^\W_])\S(?=\w)")
"""A quotation mark that seems to begin a quotation."""
_NAMES_OF_OTHERS = (
    re.compile(r"(?<![\w.+-])@[^\n]*|(?<=[\w.+-])@(?![\w-]+(?:\.[\w-]+)+(?![\w@]))[^\n]*"),
    re.compile(r"＠[^\n]*"),
    re.compile(LEFT_OUT),
    re.compile(r"^[^\n]*\S\t+\S[^\n]*", re.MULTILINE),
)
"""Mentions, which go on to the end of the line for all that anybody can tell; files; and lines from a table."""
_OF_OTHERS = (
    *_NAMES_OF_OTHERS,
    re.compile(r"#\S+"),
    re.compile(r"(?<!\d):(?=[\d_+-]*[^\W\d_])(?:[^\WA-Z]|[+'-])++:"),
    re.compile(
        r"(?<![a-z0-9+.-])(?:[a-z0-9+.-]++://|(?:mailto|tel):|[a-z0-9-]++(?:\.[a-z0-9-]++)++/)\S*", re.IGNORECASE
    ),
    re.compile(r"~{1,2}(?=\S)[^~\n]*~{1,2}"),
    re.compile(r"~~(?=\S)(?:[^~]|~(?!~))*~~"),
)
"""Names of others, of channels and of emoji; addresses; and what is struck out."""
_LINK = re.compile(r"(?:\][(\[:]|\((?:[a-z][a-z0-9+.-]*+:|www\.))[^\n()]*(?:\([^\n()]*\)[^\n()]*)*\)?", re.IGNORECASE)
_FROM = (
    "from|von|de|da|van|från|fra|od|от|від|lähettäjä|gönderen|feladó|expéditeur|remitente|mittente|remetente|afzender"
    "|avsändare|发件人|寄件者|差出人|보낸 ?사람|מאת|من"
)
_SUBJECT = (
    "subject|betreff|objet|asunto|oggetto|assunto|onderwerp|ämne|emne|aihe|konu|tárgy|temat|předmět|predmet|тема"
    "|主题|主旨|件名|제목|נושא|الموضوع"
)
_WROTE = (
    "wrote|said|says|schrieb|geschrieben|a écrit|escribió|ha scritto|schreef|escreveu|skrev|kirjoitti"
    "|napisał(?:a|\\(a\\))?|napsal(?:a|\\(a\\))?|написал[аи]?|пише|yazdı"
)
_BEFORE = rf"[ \t|{_UNSEEN}]*+(?:(?:[-*•+]|#{{1,6}})[ \t])?[*_]{{0,3}}"
_IS = r"[*_]{0,3}[ \t]?[:：]"
_SENT = r"sent|gesendet|envoyé|enviado(?: el)?|inviato|verzonden|skickat|sendt|送信日時|发送时间|寄件日期"
"""What Outlook writes below the name of who sent a mail."""
_LINES = r"(?:[^\n]*\n){1,14}?"
_TO_THE_END = rf"[:：][*_ \t{_UNSEEN}]*$"
_MAIL = re.compile(
    rf"^[ \t{_UNSEEN}]*+-{{3,}}+[ \t]*+[^\W\d_][^\n]{{0,80}}?-{{3,}}+[ \t]*+$"
    rf"|^{_BEFORE}(?:{_FROM}){_IS}(?:[^\n]{{0,200}}(?:[\w.+-]@\w|(?<!\w)(?:{_SUBJECT}){_IS})|{_LINES}{_BEFORE}(?:{_SUBJECT}){_IS})"
    rf"|^{_BEFORE}(?:{_SUBJECT}){_IS}{_LINES}{_BEFORE}(?:{_FROM}){_IS}"
    rf"|^{_BEFORE}(?:{_FROM}){_IS}[^\n]*\n\s*{_BEFORE}(?:{_SENT}){_IS}"
    rf"|^[^\n]{{0,200}}(?<!\w)(?:{_WROTE})(?!\w)[^\n]{{0,100}}{_TO_THE_END}|^[^\n]{{0,200}}写道{_TO_THE_END}"
    rf"|^{_BEFORE}(?:fwd?|wg)[:：]|^[ \t]*_{{10,}}[ \t]*$"
    rf"|^[^\n]{{0,200}}[\w.+-]@[^\s@<>]{{1,200}}>[^\n]{{0,40}}{_TO_THE_END}",
    re.IGNORECASE | re.MULTILINE,
)
"""Where a mail begins that somebody forwards or answers: the line that mail programs draw above it, its head, or the
line that says who wrote it. How long such a mail is, nobody can tell."""
_TIME = r"[0-9]{1,2}[:：][0-9]{2}(?:[:：][0-9]{2})?(?:[.,][0-9]{1,3})?(?:[ \u00a0\u202f]?(?:[ap]\.?m\.?|uhr))?"
_DATE = (
    r"(?:(?:[^\W\d_]{2,9}\.?,? )?"
    r"(?:[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}|[0-9]{1,2}\.? [^\W\d_]{3,9}\.?(?:,? [0-9]{4})?"
    r"|[^\W\d_]{3,9}\.? [0-9]{1,2}(?:,? [0-9]{4})?)(?:,? (?:at |um |à |- )?|T))"
)
_DAY = r"(?:(?i:today|yesterday|heute|gestern|aujourd[’']hui|hier|hoy|ayer|oggi|ieri)(?: at| um| à)? )"
_EARLIER = (
    r"(?:[A-Z][^\W\d_]{1,9}\.?,? (?:[0-9]{1,2}(?:st|nd|rd|th|\.)?(?:, [0-9]{4})? )?|[0-9]{1,2}[./][0-9]{1,2}\.? )"
    r"(?:at |um )?"
)
"""A day without its year, such as Thursday or Nov 12th."""
_NAME = r"[^\W\d_a-zß-öø-ÿα-ωа-я][^\s:：]*+"
"""A word that begins with a capital, or with a letter of a script that has none."""
_GOES_ON = r"(?: [A-Z]{2,4})?(?: ?\([^()\n]{1,20}\))?[:：]?[ \t]*\n(?=\s*\S)"
"""The rest of a line that ends with a time, with something below it."""
_CHAT = re.compile(
    rf"^[ \t*_{_UNSEEN}]*+(?:(?:[-•+]|#{{1,6}})[ \t])?[*_]{{0,3}}(?:"
    # [10:31] Ben: …, [Ben] [10:31] …, and a name below it
    rf"(?:\[[^\[\]\n]{{1,40}}\] ?)?\[[^\[\]\n]{{0,40}}?[0-9]{{1,2}}[:：.][0-9]{{2}}[^\[\]\n]{{0,40}}\]"
    # 10:31 Ben: …, 12/11/25, 10:31 - Ben: …, 10:31 <ben> …, 00:10:31 --> …, and what programs note
    rf"|{_DATE}[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}"
    rf"|\(?(?:{_DATE}(?:kl[.o]* ?)?[0-9]{{1,2}}[.][0-9]{{2}}|{_DATE}?(?i:{_TIME}))\)?"
    rf"(?:[ \t]*-->|[ \t,–—-]*[ \t](?:[^\n:：]{{1,60}}[:：](?!\S)|<[^<>\n]{{1,60}}>))"
    # <ben> …
    rf"|<[^<>\n@]{{1,40}}>[ \t]"
    # Ben Adams  10:31 AM, Ben — Today at 10:31, Ben, [10:31]
    rf"|[^\n]{{1,80}}?(?:[ \t]{{2,20}}+|\t|[ ]?[—–|•·][ ])[^\n:：]{{0,30}}?(?i:{_TIME})\]?{_GOES_ON}"
    rf"|[^\n]{{1,80}}?\[[^\n:：]{{0,30}}?[0-9]{{1,2}}[:：.][0-9]{{2}}[^\[\]\n]{{0,20}}\](?:{_GOES_ON}|:\s)"
    # Ben Adams 10:31
    rf"|{_NAME}(?: {_NAME}){{1,3}} (?:{_DATE}|{_DAY}|at |um |à )?(?i:{_TIME}){_GOES_ON}"
    # Ben Adams, and below it Thursday at 10:31
    rf"|{_NAME}(?: {_NAME}){{1,3}}[ \t]*\n[ \t]*{_EARLIER}(?i:{_TIME}){_GOES_ON}"
    # Ben Adams, and below it 10:31
    rf"|[^\W\d_][^\n:：]{{0,60}}(?<![\s,.;?!])\s*\n[ \t]*[\[(]?(?:{_DATE}|{_DAY})?(?i:{_TIME})[\])]?{_GOES_ON}"
    rf")",
    re.MULTILINE,
)
"""Where a chat begins that somebody pastes: a line that begins with a time and who wrote then, or ends with both, or a
name above a time, as chat services and transcripts have it. How long it is, nobody can tell."""
_BLANKS = str.maketrans(
    {**dict.fromkeys("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029", "\n"), **dict.fromkeys("\u00a0\u2007\u2009\u202f", " ")}
)
"""Other ways to break a line, and spaces of other widths, which programs put in heads of mails and chats."""
_END_OF_SENTENCE = re.compile(
    r"(?<=[^\W_]{3})\.(?=\s+[^\sa-z]|\s*\Z)|[!?](?=\s|\Z)|[。！？｡]"
    r"|\n(?=[ \t]*\n)|\n(?=[ \t]*(?:[-*•+]|[0-9]{1,9}[.)])\s)"
)
_NEGATIONS = """
    not no nor never none nobody nothing neither cannot without dont doesnt didnt cant wont wouldnt shouldnt mustnt
    neednt isnt arent aint stop avoid refrain prevent forbid forbidden unless except instead rather
    nicht nichts nie niemals kein keine keinen keinem keiner keines niemand weder ohne statt anstatt nein
    ne pas jamais aucun aucune rien sans non ni nunca jamás jamas ningún ninguno ninguna nada sin tampoco
    mai nessun nessuno nessuna niente senza não nao nenhum nenhuma sem
    niet nooit geen niks zonder inte aldrig ingen inget utan ikke ikkje uden uten ej ei älä älkää eikä ilman
    nie nigdy bez żaden nikdy není nem soha değil asla sakın
    не нет никогда без ни нельзя ні нема ніколи μη μην δεν όχι ποτέ χωρίς لا لم لن ليس بدون غير לא אל בלי नहीं मत
    không đừng chưa jangan tidak bukan tanpa
"""
_NEGATION = re.compile(
    r"(?<!\w)(?:" + "|".join(_NEGATIONS.split()) + r")(?!\w)|n't(?!\w)|(?<!\w)n'"
    r"|[不没沒别別勿未无無莫禁]|ない|ません|なく|ずに|않|못|지\s?마|지\s?말|아니|안\s|ไม่|อย่า|ห้าม|[🚫❌⛔🛑✋❎✖]"
    r"|:(?:x|octagonal[_ ]sign|(?:raised[_ ])?hand|negative[_ ]squared[_ ]cross[_ ]mark|heavy[_ ]multiplication[_ ]x):"
)
"""Words that negate in the languages that most people write; there are more of them than any list has."""
_EMPHASIS = re.compile(r"[*_~]+")
"""Marks of bold, italic and struck-out letters: `do _not_ delete` negates."""
_AROUND = "\"'«»"
_LIST = re.compile(r"\s*(?:[-*•+]|[0-9]{1,9}[.)])\s")
"""A list that follows a sentence belongs to it: “Do not do any of these” and what they are."""
_AFTER_COLON = " \t\r\n*_~"
_ALIKE = str.maketrans(dict.fromkeys("‘’‚‛′`´", "'") | dict.fromkeys("“”„‟″", '"') | dict.fromkeys("‐‑‒–—−", "-"))
"""Typographic signs that platforms, keyboards and models put in place of plain ones."""
_WITHOUT_SPACES = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Scripts whose words stand without spaces between them (Thai, Lao, Burmese, Khmer, Japanese, Chinese)."""
_WORD = re.compile(rf"[{_WITHOUT_SPACES}]{{2}}|[^\W{_WITHOUT_SPACES}]+")
"""Two characters of those scripts count as one word."""


def own_words(text: str) -> tuple[str, ...]:
    """The stretches of a message (Markdown, as adapters write it) that its author surely typed and surely wishes.

    Left out is what they may have from others, or may not mean: lines that quote (`> …`, from `>>>` on everything),
    mails that are forwarded or answered and chats that are pasted (from what stands above them on), code of every kind,
    everything between the first and the last fence, and between the first and the last quotation mark (to the end where
    one may be open), names that are mentioned (whatever follows an `@` in its line, since nobody can tell where a name
    ends), channels, emoji by name, links with what stands before them in their line (their label), what is struck out,
    every sentence with a word that negates, and what comes after such a one that ends in a colon or before a list. In
    doubt it is left out. What was pasted without any sign of it cannot be told from what was typed.
    """
    text = _NOTE.sub(LEFT_OUT, text)
    kept = [True] * len(text)
    _leave_out_blocks(text, kept)
    outside = _outside(text, kept)
    for sentence in _sentences(outside):
        if _negates(outside[sentence]):
            has_colon = outside[sentence].rstrip(_AFTER_COLON).endswith((":", "："))
            is_item = _LIST.match(outside, sentence.start)
            if has_colon or (not is_item and _LIST.match(outside, sentence.stop)):
                kept[sentence.start :] = [False] * (len(kept) - sentence.start)
                break
            kept[sentence] = [False] * len(kept[sentence])
    _leave_out_others(text, outside, _OF_OTHERS, kept)
    stretches = _kept_stretches(text, kept)
    if len(stretches) > 1:  # of what is left of a message, fewer words are not the whole of it
        stretches = [stretch for stretch in stretches if len(_WORD.findall(stretch)) >= FEWEST_WORDS]
    return tuple(stretch for stretch in stretches if stretch)


def typed_words(text: str) -> str:
    """What of a message (Markdown, as adapters write it) its author typed, as far as can be told: without lines that
    quote, mails and chats (as in `own_words`), code in blocks and what stands between them, names of files, mentions
    and links with labels (with what stands in their line where nobody can tell where they end), and whatever stands
    between the first and the last quotation mark. `LEFT_OUT` stands between what did not stand together.

    Unlike `own_words` it keeps sentences that negate: “I don’t eat meat” is a wish, too.
    """
    text = _NOTE.sub(LEFT_OUT, text)
    kept = [True] * len(text)
    _leave_out_blocks(text, kept)
    outside = _outside(text, kept)
    _leave_out_others(text, outside, _NAMES_OF_OTHERS, kept)
    stretches = _kept_stretches(text, kept)
    return f"\n{LEFT_OUT}\n".join(stretch for stretch in stretches if stretch)


def _kept_stretches(text: str, kept: Sequence[bool]) -> list[str]:
    """What is kept of a text, piece by piece; some are empty."""
    written = "".join(c if keep else _CUT for c, keep in zip(text, kept, strict=True))
    return [stretch.strip() for stretch in written.split(_CUT)]


def words_in(text: str) -> int:
    """How many words a text has; two characters of scripts without spaces count as one."""
    return len(_WORD.findall(text))


def sentence_around(quote: str, said: Iterable[str]) -> str:
    """The words of a quote with the rest of their sentence, as they were written, for people to judge it by; the quote
    itself where it is in no text, or goes over more than `MOST_SENTENCES`. Linear in the length of the texts."""
    wanted = _folded(quote).strip(_AROUND).strip()
    words = len(_WORD.findall(wanted))
    for text in said:
        if _holds(wanted, words, text):
            around = _sentences_with(wanted, text)
            if around:
                return around
    return quote


def _sentences_with(wanted: str, text: str) -> str:
    """The fewest whole sentences of a text in which folded words are, of several the first; empty when there are none,
    or they are more than `MOST_SENTENCES`."""
    ranges = _sentences(text)
    folded, ends = _folded_in_sentences(text, ranges)
    fewest: tuple[int, int] | None = None
    at = folded.find(wanted)
    for _ in range(MOST_PLACES):
        if at < 0:
            break
        first, last = bisect_right(ends, at), bisect_right(ends, at + len(wanted) - 1)
        if fewest is None or last - first < fewest[1] - fewest[0]:
            fewest = (first, last)
        if first == last:
            break
        at = folded.find(wanted, ends[first])  # what begins in the same sentence ends no earlier
    if fewest is None or fewest[1] - fewest[0] >= MOST_SENTENCES:
        return ""
    return text[ranges[fewest[0]].start : ranges[fewest[1]].stop].strip()


def _folded_in_sentences(text: str, ranges: Sequence[slice]) -> tuple[str, list[int]]:
    """A text folded as `_folded` does it, and where in it each of its sentences ends."""
    marked = _BETWEEN_SENTENCES.join(text[each].replace(_BETWEEN_SENTENCES, " ") for each in ranges)
    folded: list[str] = []
    ends: list[int] = []
    length, after_space = 0, True
    for part in _folded(marked).split(_BETWEEN_SENTENCES):
        kept = part.removeprefix(" ") if after_space else part
        after_space = kept.endswith(" ") if kept else after_space
        folded.append(kept)
        length += len(kept)
        ends.append(length)
    return "".join(folded), ends


def is_quoted(quote: str, said: Iterable[str]) -> bool:
    """Whether `quote` is in one of the texts that somebody wrote: a whole one of at least two words, or at least three
    whole words of it in a row.

    Neither case nor white space matters, nor quotation marks around it, nor how Unicode writes the same letters and
    signs, nor characters that cannot be seen.
    """
    wanted = _folded(quote).strip(_AROUND).strip()
    words = len(_WORD.findall(wanted))
    return any(_holds(wanted, words, text) for text in said)


def _holds(wanted: str, words: int, text: str) -> bool:
    """Whether so many folded words are quoted from a text, which is not folded."""
    return words >= FEWEST_OF_A_MESSAGE and _is_in(wanted, words, _folded(text))


def _negates(sentence: str) -> bool:
    folded = _folded(sentence)
    return any(_NEGATION.search(_EMPHASIS.sub(instead, folded)) for instead in ("", " "))


def _outside(text: str, kept: list[bool]) -> str:
    """A text with blanks for what is left out of it. Its lines stay as they are: code within a name or a label ends
    neither."""
    return "".join(c if keep or c == "\n" else " " for c, keep in zip(text, kept, strict=True))


def _leave_out_others(text: str, outside: str, of_others: Iterable[re.Pattern[str]], kept: list[bool]) -> None:
    """What others may have written, outside of blocks: by patterns, links with their labels, and quotations. A name and
    a label may hold a mark of code themselves, so that the rest of it is in none."""
    for seen in (text, outside):
        for pattern in of_others:
            for found in pattern.finditer(seen):
                _leave_out(found.start(), found.end(), kept)
        at = 0
        for line in seen.split("\n"):
            if links := [*_LINK.finditer(line)]:
                label = seen.find("[", seen.rfind("\n\n", 0, at) + 1, at) if "]" in line else -1
                _leave_out(label if label >= 0 else at, at + links[-1].end(), kept)
            at += len(line) + 1
    if marks := [found.span() for found in _QUOTATION.finditer(outside)]:
        # Its other mark may be in what is left out already.
        everywhere = sorted([*marks, *(found.span() for found in _QUOTATION.finditer(text))])
        begins = marks[0] if _OPENS.match(text, marks[0][0]) else everywhere[0]
        ends = everywhere[-1]
        is_closed = len(marks) % 2 == 0 and not _OPENS.match(text, ends[0])
        _leave_out(begins[0], ends[1] if is_closed else len(kept), kept)


def _leave_out(start: int, end: int, kept: list[bool]) -> None:
    kept[start:end] = [False] * (end - start)


def _leave_out_blocks(text: str, kept: list[bool]) -> None:
    """Lines that quote, mails, chats, and code in blocks: everything between the first fence and
    the last, since nobody can tell which of them belong together where code, a name or a label holds one itself."""
    in_lines = text.replace("\r\n", " \n").translate(_BLANKS)
    for pattern in (_MAIL, _CHAT):
        if found := pattern.search(in_lines):
            kept[found.start() :] = [False] * (len(kept) - found.start())
    fence, at = "", 0
    fences: list[int] = []
    quotes_on = to_the_end = after_text = False
    for line in text.splitlines(keepends=True):
        indented = _INDENTED.match(line) is not None and not after_text
        tildes = _TILDES.match(line) if fence in ("", _TILDE) else None
        quotes_on = quotes_on or _QUOTED_LINE.match(line) is not None
        to_the_end = to_the_end or (not fence and _QUOTED_TO_THE_END.match(line) is not None)
        if quotes_on or to_the_end or tildes or fence == _TILDE or (indented and not fence):
            kept[at : at + len(line)] = [False] * len(line)
            if tildes and not quotes_on:
                fence = "" if fence else _TILDE
                fences.append(at)
            elif fences:
                fences += [at + found.start() for found in _TICKS.finditer(line)]
        else:
            fences += [at + found.start() for found in _TICKS.finditer(line)]
            fence = _leave_out_code(line, at, kept, fence)
        after_text = bool(line.strip()) and not indented
        quotes_on = quotes_on and not line.endswith("\n")  # some show other line breaks as none
        at += len(line)
    if fences:
        kept[fences[0] : fences[-1]] = [False] * (fences[-1] - fences[0])


def _leave_out_code(line: str, at: int, kept: list[bool], fence: str) -> str:
    """What is between fences in a line; returns the fence that is still open after it. As many backticks as opened one
    close it, and more, so that code may hold fences itself; twice as many close it and open another one."""
    start = 0
    for found in _TICKS.finditer(line):
        if fence:
            kept[at + start : at + found.start()] = [False] * (found.start() - start)
        kept[at + found.start() : at + found.end()] = [False] * len(found[0])
        rest = found[0].removeprefix(fence)
        if not fence or len(rest) < len(found[0]):
            fence = rest if len(rest) >= FEWEST_TICKS else ""
        start = found.end()
    if fence:
        kept[at + start : at + len(line)] = [False] * (len(line) - start)
    return fence


def _sentences(text: str) -> list[slice]:
    """Where the sentences are. A full stop ends one only after a long word and before what may begin another (“e.g.”
    does not); a line break only before a list's next item or an empty line."""
    ends = [found.end() for found in _END_OF_SENTENCE.finditer(text)]
    return [slice(start, end) for start, end in pairwise([0, *ends, len(text)]) if end > start]


def _is_in(wanted: str, words: int, text: str) -> bool:
    if wanted == text.strip(_AROUND).strip():
        return True
    if words < FEWEST_WORDS:
        return False
    at = text.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        if not (_joined(text[at - 1 : at], wanted[0]) or _joined(wanted[-1], text[end : end + 1])):
            return True
        at = text.find(wanted, at + 1)
    return False


def _joined(before: str, after: str) -> bool:
    """Whether two characters belong to one word."""
    return before.isalnum() and after.isalnum() and not re.search(f"[{_WITHOUT_SPACES}]", before + after)


def _folded(text: str) -> str:
    if not text.isascii():
        seen = "".join(c for c in text if unicodedata.category(c) != "Cf")
        text = composed(seen.casefold().translate(_ALIKE)).translate(_ALIKE)  # form NFKC makes a space of ´
    return " ".join(text.casefold().replace("`", "'").split())
