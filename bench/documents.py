"""How well documents are found by words: a handbook made here from a seed, and questions in other words than its own.

What is asked for is graded: the passage that answers is worth 2, others of its chapter 1. The questions share some
words with the passage that answers, never all; the rest of the handbook is written with the words of all chapters.
"""

from __future__ import annotations

import asyncio
import math
import random
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from bench.cluster import cluster
from bench.figures import Figure
from servers.documents.embeddings import MOST_AT_ONCE, Embeddings, EmbeddingService, space_of
from servers.documents.postgres_store import PostgresDocumentStore
from servers.documents.search import BY_BOTH, PassageSearch
from servers.documents.sqlite_store import SqliteDocumentStore
from servers.documents.store import Asker, DocumentStore, FoundPassage
from tests.fakes.embedding_server import fake_embeddings

SEED = 20261127
ASKER = Asker("web:ana", "")
FILLERS = 12
"""Passages in each chapter that answer nothing."""
HANDBOOK: Mapping[str, Sequence[tuple[str, str]]] = {
    "Leave": (
        ("Everybody has 28 days of paid leave a year.", "how many holidays do I get, are they paid"),
        ("Days that are not taken can be carried over until the end of March.", "can I carry leave over to next year"),
        ("For a wedding or a funeral in the family there are two extra days.", "time off for a family funeral"),
        ("Enter absence in the calendar two weeks ahead, and tell your lead.", "whom do I tell before an absence"),
    ),
    "Travel": (
        ("Book trains in second class; first class from four hours on.", "may I take a first class train"),
        ("Hotels cost 140 euros a night at most, breakfast included.", "limit for a hotel night"),
        ("Flights within the country need the approval of a director.", "who approves a domestic flight"),
        ("Keep receipts of taxis, which are paid only at night or with luggage.", "is a taxi reimbursed with luggage"),
    ),
    "Expenses": (
        ("Send receipts within 30 days, with a photo of each.", "deadline for handing in a receipt"),
        ("The money is on your account after the next payroll run.", "when will expenses be on my account"),
        ("Meals with customers need the names of all guests.", "dinner with a customer, what must I note"),
        ("A private card can be used up to 500 euros.", "can I pay with my own card"),
    ),
    "Equipment": (
        ("Laptops are replaced after three years.", "when do I get a new laptop"),
        ("A second screen for the home office is lent on request.", "screen for working at home"),
        ("Lost keys must be reported to the front desk on the same day.", "I lost my key"),
        ("Private phones may read mail once they are enrolled.", "company mail on my own phone"),
    ),
    "Security": (
        ("Use the password manager, and never the same password twice.", "where do I keep passwords"),
        ("Report suspicious mail with the button above it.", "what to do about a suspicious message"),
        ("Visitors wear a badge and are never alone in the building.", "do guests need a badge"),
        ("Lock the screen when you leave the desk.", "leaving my desk for a minute"),
    ),
    "Health": (
        ("A doctor’s note is needed from the third day of illness.", "sick for two days, do I need a doctor’s note"),
        ("The flu shot is offered in October, free of charge.", "is there a flu vaccination"),
        ("First aid boxes hang beside each kitchen.", "where is the first aid box"),
        ("Eye tests and glasses for the screen are paid every two years.", "does the company pay for glasses"),
    ),
    "Parents": (
        ("Parental leave is announced seven weeks before it begins.", "how early must I announce parental leave"),
        ("There is a room for small children on the second floor.", "can I bring my child to the office"),
        ("Part time of 15 to 32 hours is possible during parental leave.", "working part time as a parent"),
        ("For a sick child there are ten days a year.", "my child is ill"),
    ),
    "Learning": (
        ("Everybody has a budget of 1,500 euros for courses.", "what may a course cost"),
        ("Two days a year are for a conference of your choice.", "can I go to a conference"),
        ("Books need no approval below 60 euros.", "buying a book"),
        ("Language lessons are held on Tuesdays, German and English.", "is there an English lesson"),
    ),
}


HANDBUCH: Mapping[str, Sequence[tuple[str, str]]] = {
    "Urlaub": (
        ("Alle haben im Jahr 28 bezahlte Urlaubstage.", "wie viel Urlaub bekomme ich im Jahr"),
        ("Nicht genommene Tage können bis Ende März übertragen werden.", "kann ich Tage ins nächste Jahr übertragen"),
        ("Für eine Hochzeit gibt es zwei zusätzliche freie Tage.", "frei bei Hochzeiten in der Familie"),
        ("Abwesenheiten stehen zwei Wochen vorher im Kalender.", "wann trage ich eine Abwesenheit ein"),
    ),
    "Reisen": (
        ("Bahnfahrten werden in der zweiten Klasse gebucht.", "darf ich eine Bahnfahrt in der ersten Klasse buchen"),
        ("Hotelübernachtungen kosten höchstens 140 Euro.", "Grenze für eine Hotelübernachtung"),
        ("Inlandsflüge genehmigt die Geschäftsführung.", "wer genehmigt einen Inlandsflug"),
        ("Taxifahrten werden nur nachts oder mit Gepäck erstattet.", "wird eine Taxifahrt mit Gepäck erstattet"),
    ),
    "Ausrüstung": (
        ("Rechner werden nach drei Jahren ersetzt.", "wann wird mein Rechner ersetzt"),
        ("Ein zweiter Bildschirm wird auf Anfrage verliehen.", "zweiten Bildschirm für zu Hause leihen"),
        ("Verlorene Schlüssel sind am selben Tag zu melden.", "ich habe meinen Schlüssel verloren"),
        ("Private Telefone dürfen nach der Anmeldung Mails lesen.", "Mails auf dem privaten Telefon"),
    ),
    "Gesundheit": (
        ("Ab dem dritten Krankheitstag ist ein Attest nötig.", "brauche ich bei zwei Krankheitstagen ein Attest"),
        ("Grippeimpfungen gibt es im Oktober kostenlos.", "gibt es eine Grippeimpfung"),
        ("Verbandskästen hängen neben jeder Küche.", "wo ist der nächste Verbandskasten"),
        ("Sehtests und Bildschirmbrillen werden alle zwei Jahre bezahlt.", "bezahlt die Firma eine Bildschirmbrille"),
    ),
}


async def figures() -> list[Figure]:
    """Recall, order and time of searching by words, in both databases; and that vectors take part."""
    made: list[Figure] = []
    async with fake_embeddings() as service, cluster() as postgresql:
        embeddings = Embeddings(EmbeddingService("stand-in", service.base_url, ""))
        with tempfile.TemporaryDirectory() as folder:
            sqlite = SqliteDocumentStore(Path(folder) / "documents.db")
            made += await asyncio.to_thread(_of, "SQLite", sqlite, embeddings)
        store = await asyncio.to_thread(PostgresDocumentStore, postgresql.new_database())
        made += await asyncio.to_thread(_of, "PostgreSQL", store, embeddings)
        store.close()
    return made


def _of(name: str, store: DocumentStore, embeddings: Embeddings) -> list[Figure]:
    english, german = _searched(store, HANDBOOK), _searched(store, HANDBUCH)
    with_vectors = _searched_by_both(store, embeddings)
    return [
        Figure(f"{name}: recall@8 of words", statistics.mean(english.recalls), ""),
        Figure(f"{name}: recall@8 of words, German", statistics.mean(german.recalls), ""),
        Figure(f"{name}: nDCG@10 of words", statistics.mean(english.gains), ""),
        Figure(f"{name}: one search", statistics.median([*english.took, *german.took]) * 1000, "ms"),
        Figure(f"{name}: … with vectors of a stand-in", statistics.median(with_vectors) * 1000, "ms"),
    ]


@dataclass
class Searched:
    """What came of the questions about a handbook."""

    recalls: list[bool] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)
    """Seconds."""


def _searched(store: DocumentStore, handbook: Mapping[str, Sequence[tuple[str, str]]]) -> Searched:
    rng, done = random.Random(SEED), Searched()  # no secret
    chapters = {title: store.add(ASKER, title, _chapter(handbook, title, rng), "me").id for title in handbook}
    for title, facts in handbook.items():
        for answer, question in facts:
            began = time.perf_counter()
            found = store.by_words(ASKER, question, 10)
            done.took.append(time.perf_counter() - began)
            done.recalls.append(any(answer in each.text for each in found[:8]))
            done.gains.append(_ndcg(found, answer, chapters[title], len(facts)))
    for each in chapters.values():
        store.delete(ASKER, UUID(each))
    return done


def _searched_by_both(store: DocumentStore, embeddings: Embeddings) -> list[float]:
    """How long searches by words and by meaning take, in seconds. The stand-in knows nothing of what texts mean: how
    well they find is not measured."""
    rng = random.Random(SEED)  # no secret
    chapters = [store.add(ASKER, title, _chapter(HANDBOOK, title, rng), "me").id for title in HANDBOOK]
    space = space_of(embeddings.model, embeddings.of_query("length"))
    while missing := store.without_vector(space, MOST_AT_ONCE):
        vectors = embeddings.of_passages([text for _number, text in missing])
        store.keep_vectors(space, [(*each, vector) for each, vector in zip(missing, vectors, strict=True)])
    search, took = PassageSearch(store, embeddings), []
    for _answer, question in (fact for facts in HANDBOOK.values() for fact in facts):
        began = time.perf_counter()
        _found, note = search.search(ASKER, question, 8)
        took.append(time.perf_counter() - began)
        if note != BY_BOTH:
            raise RuntimeError(f"vectors took no part: {note}")
    for each in chapters:
        store.delete(ASKER, UUID(each))
    return took


def _chapter(handbook: Mapping[str, Sequence[tuple[str, str]]], title: str, rng: random.Random) -> str:
    """A chapter, its answers among passages that only use such words."""
    words = [word.strip(".,;").lower() for facts in handbook.values() for answer, _ in facts for word in answer.split()]
    fillers = [f"Note that {' '.join(rng.sample(words, 12))}." for _ in range(FILLERS)]
    parts = [answer for answer, _ in handbook[title]] + fillers
    rng.shuffle(parts)
    return "\n\n".join(
        f"<!-- page {number} -->\n\n## {title} {number}\n\n{part}" for number, part in enumerate(parts, 1)
    )


def _ndcg(found: Sequence[FoundPassage], answer: str, chapter: str, answers: int) -> float:
    """Discounted gain of an order, beside the best there could be."""
    worth = [2 if answer in each.text else int(each.document_id == chapter) for each in found]
    best = [2, *([1] * (answers + FILLERS - 1))][:10]
    return _gain(worth) / _gain(best)


def _gain(worth: Sequence[int]) -> float:
    return sum((2**each - 1) / math.log2(place + 2) for place, each in enumerate(worth))
