-- Processes of the version before write the ledger and the runs, too: the database queues what they add.
CREATE FUNCTION "queue_period_rows"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- Sums of an old day replace entries that were queued before.
  INSERT INTO "connection_period_changes" ("account_id", "connection_id", "day", "rows", "runs")
  SELECT "account_id", "connection_id", "day", "rows_free" + "rows_paid", 0 FROM "new_rows"
  WHERE "stream_run_id" IS NOT NULL;
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE FUNCTION "queue_period_runs"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO "connection_period_changes" ("account_id", "connection_id", "day", "rows", "runs")
  SELECT "account_id", "connection_id", ("created_at" AT TIME ZONE 'UTC')::date, 0, count(*) FROM "new_rows"
  GROUP BY 1, 2, 3;
  RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "usage_ledger_period_rows" AFTER INSERT ON "usage_ledger" REFERENCING NEW TABLE AS "new_rows"
  FOR EACH STATEMENT EXECUTE FUNCTION "queue_period_rows"();--> statement-breakpoint
CREATE TRIGGER "connection_runs_period_runs" AFTER INSERT ON "connection_runs" REFERENCING NEW TABLE AS "new_rows"
  FOR EACH STATEMENT EXECUTE FUNCTION "queue_period_runs"();--> statement-breakpoint
-- Behind the triggers, which wait for transactions that write: no earlier entry has a later day than today.
UPDATE "accounts" SET "periods_from" = (clock_timestamp() AT TIME ZONE 'UTC')::date + 1;
