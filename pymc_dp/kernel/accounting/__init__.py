"""From events to what they cost: readings of each kind, accountants, and the filter behind a ledger."""
