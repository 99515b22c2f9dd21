CREATE TABLE "run_days" (
	"account_id" uuid NOT NULL,
	"connection_id" uuid NOT NULL,
	"day" date NOT NULL,
	"status" text NOT NULL,
	"runs" integer NOT NULL,
	CONSTRAINT "run_days_account_id_day_connection_id_status_pk" PRIMARY KEY("account_id","day","connection_id","status"),
	CONSTRAINT "run_days_status_known" CHECK ("run_days"."status" in ('queued', 'running', 'retrying', 'stopping', 'succeeded', 'partially_succeeded', 'failed', 'stopped', 'skipped')),
	CONSTRAINT "run_days_counts" CHECK ("run_days"."runs" >= 1)
);
--> statement-breakpoint
ALTER TABLE "usage_ledger" ALTER COLUMN "connection_run_id" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_ledger" ALTER COLUMN "stream_run_id" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "installation" ADD COLUMN "attempts_fenced" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "run_days" ADD CONSTRAINT "run_days_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "events_age" ON "events" USING btree ("occurred_at") WHERE "events"."processing_status" in ('processed', 'failed');--> statement-breakpoint
CREATE INDEX "usage_ledger_details" ON "usage_ledger" USING btree ("day") WHERE "usage_ledger"."stream_run_id" is not null;--> statement-breakpoint
CREATE INDEX "connection_runs_reruns" ON "connection_runs" USING btree ("rerun_of_run_id") WHERE "connection_runs"."rerun_of_run_id" is not null;--> statement-breakpoint
CREATE INDEX "network_log_segments_stream_run" ON "network_log_segments" USING btree ("stream_run_id") WHERE "network_log_segments"."stream_run_id" is not null;--> statement-breakpoint
CREATE INDEX "network_log_segments_age" ON "network_log_segments" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "stream_runs_of_stream" ON "stream_runs" USING btree ("stream_id","status","finished_at");--> statement-breakpoint
CREATE INDEX "deliveries_age" ON "deliveries" USING btree ("created_at") WHERE "deliveries"."status" not in ('pending', 'retrying');--> statement-breakpoint
ALTER TABLE "usage_ledger" ADD CONSTRAINT "usage_ledger_sum" CHECK (("usage_ledger"."connection_run_id" is null) = ("usage_ledger"."stream_run_id" is null));