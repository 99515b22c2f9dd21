CREATE TABLE "change_readers" (
	"stream_id" uuid PRIMARY KEY NOT NULL,
	"source_id" uuid NOT NULL,
	"lag_bytes" bigint,
	"is_lagging" boolean DEFAULT false NOT NULL,
	"failures" integer DEFAULT 0 NOT NULL,
	"error" text,
	"next_look_at" timestamp(3) with time zone NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "schema_changes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"connection_id" uuid NOT NULL,
	"namespace" text,
	"stream_name" text NOT NULL,
	"subject" text NOT NULL,
	"field_path" jsonb,
	"before" jsonb,
	"after" jsonb,
	"breaking" boolean NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"id" uuid PRIMARY KEY NOT NULL,
	"api_key_id" uuid NOT NULL,
	"hash" text NOT NULL,
	"created_at" timestamp(3) with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp(3) with time zone NOT NULL
);
--> statement-breakpoint
DROP INDEX "usage_ledger_day";--> statement-breakpoint
DROP INDEX "connection_runs_account";--> statement-breakpoint
ALTER TABLE "connection_streams" ADD COLUMN "loaded_columns" jsonb;--> statement-breakpoint
ALTER TABLE "connections" ADD COLUMN "locked_from" jsonb;--> statement-breakpoint
ALTER TABLE "connections" ADD COLUMN "ticking_since" timestamp(3) with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
ALTER TABLE "connections" ADD COLUMN "delay_told_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "connections" ADD COLUMN "rejected_rows_policy" text DEFAULT 'fail' NOT NULL;--> statement-breakpoint
ALTER TABLE "connections" ADD COLUMN "max_rejected_rows" integer DEFAULT 1000 NOT NULL;--> statement-breakpoint
ALTER TABLE "account_connectors" ADD COLUMN "announced_days" integer[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "account_connectors" ADD COLUMN "free_end_told_at" timestamp(3) with time zone;--> statement-breakpoint
ALTER TABLE "connection_runs" ADD COLUMN "credits_reserved" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "stream_runs" ADD COLUMN "log_lag_bytes" bigint;--> statement-breakpoint
ALTER TABLE "change_readers" ADD CONSTRAINT "change_readers_stream_id_connection_streams_id_fk" FOREIGN KEY ("stream_id") REFERENCES "public"."connection_streams"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "schema_changes" ADD CONSTRAINT "schema_changes_connection_id_connections_id_fk" FOREIGN KEY ("connection_id") REFERENCES "public"."connections"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_api_key_id_api_keys_id_fk" FOREIGN KEY ("api_key_id") REFERENCES "public"."api_keys"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "change_readers_due" ON "change_readers" USING btree ("next_look_at");--> statement-breakpoint
CREATE INDEX "change_readers_source" ON "change_readers" USING btree ("source_id");--> statement-breakpoint
CREATE INDEX "schema_changes_connection" ON "schema_changes" USING btree ("connection_id");--> statement-breakpoint
CREATE UNIQUE INDEX "sessions_hash" ON "sessions" USING btree ("hash");--> statement-breakpoint
CREATE INDEX "sessions_api_key" ON "sessions" USING btree ("api_key_id");--> statement-breakpoint
CREATE INDEX "sessions_expiry" ON "sessions" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "usage_ledger_connection" ON "usage_ledger" USING btree ("connection_id","day");--> statement-breakpoint
CREATE INDEX "usage_ledger_sums" ON "usage_ledger" USING btree ("account_id","day","kind","credits_used","rows_free","rows_paid","credits_free","bytes_loaded");--> statement-breakpoint
CREATE INDEX "usage_ledger_day" ON "usage_ledger" USING btree ("account_id","day","connection_id","rows_free","rows_paid");--> statement-breakpoint
CREATE INDEX "connection_runs_account" ON "connection_runs" USING btree ("account_id","created_at","connection_id","status");