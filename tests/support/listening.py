"""A real server of the service in a thread."""

import contextlib
import threading
import time

from tacit.service.run import server


@contextlib.contextmanager
def listening(session, **options):
    """A real server in a thread, by its address."""
    ports = []
    made = server(session, port=0, began=ports.append, **options)
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + 60
    while not ports:
        assert thread.is_alive()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    try:
        yield f"http{'s' if 'tls_key' in options else ''}://127.0.0.1:{ports[0]}"
    finally:
        made.should_exit = True
        thread.join(30)
