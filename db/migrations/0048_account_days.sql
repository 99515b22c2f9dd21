CREATE TABLE "account_days" (
	"account_id" uuid NOT NULL,
	"day" date NOT NULL,
	"kind" text NOT NULL,
	"rows_free" bigint NOT NULL,
	"rows_paid" bigint NOT NULL,
	"credits_used" bigint NOT NULL,
	"credits_free" bigint NOT NULL,
	"bytes_loaded" bigint NOT NULL,
	"runs" integer NOT NULL,
	"runs_succeeded" integer NOT NULL,
	"runs_partially_succeeded" integer NOT NULL,
	"runs_failed" integer NOT NULL,
	CONSTRAINT "account_days_account_id_day_kind_pk" PRIMARY KEY("account_id","day","kind"),
	CONSTRAINT "account_days_kind_known" CHECK ("account_days"."kind" in ('elt', 'reverse_etl')),
	CONSTRAINT "account_days_counts" CHECK ("account_days"."rows_free" >= 0 and "account_days"."rows_paid" >= 0 and "account_days"."credits_used" >= 0 and "account_days"."credits_free" >= 0
        and "account_days"."bytes_loaded" >= 0 and "account_days"."runs_succeeded" >= 0 and "account_days"."runs_partially_succeeded" >= 0
        and "account_days"."runs_failed" >= 0
        and "account_days"."runs" >= "account_days"."runs_succeeded" + "account_days"."runs_partially_succeeded" + "account_days"."runs_failed")
);
--> statement-breakpoint
CREATE TABLE "connection_months" (
	"account_id" uuid NOT NULL,
	"month" date NOT NULL,
	"connection_id" uuid NOT NULL,
	"rows" bigint NOT NULL,
	"runs" integer NOT NULL,
	CONSTRAINT "connection_months_account_id_month_connection_id_pk" PRIMARY KEY("account_id","month","connection_id"),
	CONSTRAINT "connection_months_month" CHECK (extract(day from "connection_months"."month") = 1),
	CONSTRAINT "connection_months_counts" CHECK ("connection_months"."rows" >= 0 and "connection_months"."runs" >= 0)
);
--> statement-breakpoint
ALTER TABLE "account_days" ADD CONSTRAINT "account_days_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "connection_months" ADD CONSTRAINT "connection_months_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;