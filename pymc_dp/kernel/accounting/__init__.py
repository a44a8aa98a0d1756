"""From events to what they cost: readings of each kind, accountants, filters, and the least noise for a budget."""
