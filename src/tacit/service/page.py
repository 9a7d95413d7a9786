"""The page for people who do not live in a terminal."""

from __future__ import annotations

from fastapi import FastAPI

from .app import Service


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the pages to the application."""
