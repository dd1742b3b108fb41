"""Clients, what they do in a round, and a run from spec to result."""

from fedlogit.federation.client import Client, State
from fedlogit.federation.federation import Federation
from fedlogit.federation.ledger import Ledger

__all__ = ["Client", "Federation", "Ledger", "State"]
