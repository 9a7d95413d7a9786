"""A service that is killed at any moment, and its database with it: nothing is decided twice, and no answer is lost."""

from serving import SVT, Judge, killed

KILLS = 3
"""`make faults` kills a thousand times."""


def test_every_answer_is_on_record_once_whenever_the_service_is_killed(warm, run):
    found = killed(run, Judge(run, run / "ledger.sqlite"), session="killed", terms=SVT, kills=KILLS, warm=warm, seed=1)
    assert found["services"] == KILLS
    assert found["decided"] > 10 * KILLS


def test_every_answer_is_on_record_once_whenever_the_service_or_its_database_is_killed(warm, stored, database):
    run, address = stored
    options = {"ledger": address, "database": database, "warm": warm}
    found = killed(run, Judge(run, database.plain), session="killed", terms=SVT, kills=KILLS, seed=2, **options)
    assert found["services"] + found["databases"] == KILLS
    assert found["databases"] >= 1
    assert found["decided"] > 10 * KILLS
