-- The following migrations add triggers to both tables. Workers lock runs, then the ledger and accounts: in this order.
LOCK TABLE "connection_runs", "usage_ledger" IN SHARE ROW EXCLUSIVE MODE;
