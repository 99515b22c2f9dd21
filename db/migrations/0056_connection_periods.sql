CREATE TABLE "connection_period_changes" (
	"account_id" uuid NOT NULL,
	"seq" bigint GENERATED ALWAYS AS IDENTITY (sequence name "connection_period_changes_seq_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"connection_id" uuid NOT NULL,
	"day" date NOT NULL,
	"rows" bigint NOT NULL,
	"runs" integer NOT NULL,
	CONSTRAINT "connection_period_changes_account_id_seq_pk" PRIMARY KEY("account_id","seq"),
	CONSTRAINT "connection_period_changes_counts" CHECK ("connection_period_changes"."rows" >= 0 and "connection_period_changes"."runs" >= 0)
);
--> statement-breakpoint
CREATE TABLE "connection_periods" (
	"account_id" uuid NOT NULL,
	"start" date NOT NULL,
	"connection_id" uuid NOT NULL,
	"rows" bigint NOT NULL,
	"runs" integer NOT NULL,
	CONSTRAINT "connection_periods_account_id_start_connection_id_pk" PRIMARY KEY("account_id","start","connection_id"),
	CONSTRAINT "connection_periods_counts" CHECK ("connection_periods"."rows" >= 0 and "connection_periods"."runs" >= 0)
);
--> statement-breakpoint
CREATE TABLE "period_connections" (
	"account_id" uuid NOT NULL,
	"start" date NOT NULL,
	"connections" integer NOT NULL,
	CONSTRAINT "period_connections_account_id_start_pk" PRIMARY KEY("account_id","start"),
	CONSTRAINT "period_connections_counts" CHECK ("period_connections"."connections" >= 1)
);
--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "periods_from" date DEFAULT '2000-01-01' NOT NULL;--> statement-breakpoint
ALTER TABLE "connection_period_changes" ADD CONSTRAINT "connection_period_changes_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_periods" ADD CONSTRAINT "connection_periods_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "period_connections" ADD CONSTRAINT "period_connections_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "connection_periods_rows" ON "connection_periods" USING btree ("account_id","start","rows" DESC NULLS FIRST,"connection_id","runs");